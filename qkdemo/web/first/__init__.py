"""The first picture of a page, drawn by the server into the page's own HTML: seen before any of its code is there.

* `answer`: which picture belongs to a request, made once for all who ask; `page`: how it stands in the page;
* `drawn`: an exhibit as HTML, at its dial; `curves`, `pictures`: its panels as SVG; `sheet`: its style;
* `symbols`: the icons that a page can show, instead of all that there are.

It says what the live exhibit will say, from the same table and view, and goes when that has drawn itself
(`connection/first.js`).
"""
