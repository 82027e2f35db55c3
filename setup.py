"""What pyproject.toml cannot say: the wheel also holds app.py, its pages and its settings, as qkdemo/served/."""

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py


class BuildPy(build_py):
    """Leaves out this file, which lies beside app.py."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Every module but `setup`."""
        return [module for module in super().find_package_modules(package, package_dir) if module[1] != "setup"]


setup(
    packages=[*find_packages(include=["qkdemo", "qkdemo.*"]), "qkdemo.served", "qkdemo.served.pages"],
    package_dir={"qkdemo.served": ".", "qkdemo.served.pages": "pages"},
    package_data={
        "qkdemo": [
            f"**/*.{ending}"
            for ending in ("toml", "po", "js", "css", "png", "svg", "woff2", "txt", "json", "jsonl", "npz", "zip")
        ],
        "qkdemo.served": [".streamlit/config.toml"],
    },
    cmdclass={"build_py": BuildPy},
)
