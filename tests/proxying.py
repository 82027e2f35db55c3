"""nginx before one server or several, as universities and halls have it.

* `proxied(servers, folder, where)`: the proxy's address, below which the app answers;
* `NGINX`: the program, or None.
"""

import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from tests.serving import PATIENCE_S, free_port

NGINX: Final = shutil.which("nginx") or next((path for path in ["/usr/sbin/nginx"] if Path(path).exists()), None)
CONFIG: Final = """
worker_processes 1;
pid {folder}/nginx.pid;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
  upstream app {{ {servers} }}
  server {{
    listen 127.0.0.1:{port};
    location {path}/ {{
      proxy_pass http://app{target};
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
      {upgrade}
      proxy_buffering off;
      proxy_read_timeout 1d;
    }}
  }}
}}
"""
UPGRADE: Final = "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;"


@contextmanager
def proxied(
    servers: Sequence[str],
    folder: Path,
    path: str = "",
    *,
    strips: bool = False,
    upgrades: bool = True,
    port: int | None = None,
) -> Iterator[str]:
    """A proxy before `servers`, one after the other; it may take `path` away, and may pass no web sockets on."""
    assert NGINX is not None
    port = port or free_port()
    lines = " ".join(f"server {urlsplit(address).netloc};" for address in servers)
    target = "/" if strips else ""
    config = folder / "nginx.conf"
    text = CONFIG.format(
        folder=folder, servers=lines, port=port, path=path, target=target, upgrade=UPGRADE if upgrades else ""
    )
    config.write_text(text, encoding="utf-8")
    command = [NGINX, "-p", str(folder), "-c", str(config), "-e", str(folder / "error.log"), "-g", "daemon off;"]
    with (folder / "nginx.txt").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}{path}"
        give_up = time.monotonic() + PATIENCE_S
        while True:
            try:
                with urlopen(f"{address}/_stcore/health", timeout=5):
                    break
            except (URLError, OSError):
                assert process.poll() is None, (folder / "nginx.txt").read_text(encoding="utf-8")
                assert time.monotonic() < give_up
                time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait()
