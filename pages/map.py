"""The page of maps: any lab over two of its dials at once."""

from qkdemo.web.maps.page import map_page

map_page()
