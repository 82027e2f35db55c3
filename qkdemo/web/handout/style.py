"""How a handout looks on paper and on a screen: the style sheet that stands in its file.

* `STYLE`: A4, light, no font that has to be fetched; a stop is not torn apart where it fits a page.
"""

from typing import Final

from qkdemo.charts.theme import LIGHT, mixed

_RULE: Final = mixed(LIGHT.paper, LIGHT.ink, 0.18)
_TINT: Final = mixed(LIGHT.paper, LIGHT.ink, 0.04)
_TONE: Final = mixed(LIGHT.paper, "#C2410C", 0.25)
_LOUD: Final = mixed(LIGHT.paper, "#C2410C", 0.45)

STYLE: Final = f"""
@page {{ size: A4; margin: 16mm 15mm 18mm; }}
* {{ box-sizing: border-box; }}
html {{ color-scheme: light; }}
body {{ margin: 0; background: {LIGHT.paper}; color: {LIGHT.ink}; font: 11pt/1.45 "Source Sans 3", "Source Sans Pro", "Segoe UI", "Helvetica Neue", Arial, sans-serif; print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
main {{ max-width: 180mm; margin: 0 auto; padding: 6mm 4mm; }}
h1 {{ margin: 0 0 1mm; font-size: 21pt; line-height: 1.2; }}
h2 {{ margin: 0 0 1.5mm; font-size: 14pt; line-height: 1.25; break-after: avoid; }}
h3 {{ margin: 0 0 1mm; font-size: 12pt; break-after: avoid; }}
p {{ margin: 0 0 2mm; }}
.title {{ margin: 0; font-size: 9.5pt; font-weight: 700; line-height: 1.25; }}
header p, .axis, .span, .live, .again, figcaption, footer {{ color: {LIGHT.muted}; }}
.stop {{ margin: 0 0 7mm; padding-top: 4mm; border-top: 1px solid {_RULE}; break-inside: avoid; }}
.question {{ font-size: 11.5pt; }}
.choices {{ margin: 0 0 2mm; padding-left: 7mm; }}
.mine {{ margin-bottom: 3mm; }}
.blank::after {{ content: ""; display: inline-block; width: 60mm; margin-left: 2mm; border-bottom: 1px solid {LIGHT.ink}; }}
figure {{ margin: 0 0 3mm; break-inside: avoid; }}
.panels {{ display: flex; flex-wrap: wrap; gap: 3mm; align-items: flex-start; }}
.panel.grid, .panel.cells {{ max-width: 100%; overflow-x: auto; }}
.panel svg {{ display: block; overflow: visible; max-width: 100%; height: auto; }}
.panel svg text {{ font-family: inherit; }}
.axis {{ margin: 0 0 1mm; font-size: 8.5pt; line-height: 1.2; }}
figcaption {{ margin-top: 1.5mm; font-size: 9.5pt; }}
table {{ border-collapse: collapse; font-size: 8.5pt; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 0.5mm 1.6mm; border-bottom: 1px solid {_RULE}; text-align: left; vertical-align: top; }}
.grid th, .grid td {{ padding: 0.4mm 0.8mm; font-size: 6.6pt; }}
.strong > * {{ font-weight: 700; }}
.quiet {{ background: {_TINT}; }}
.loud {{ background: {_TONE}; }}
.loudest {{ background: {_LOUD}; font-weight: 600; }}
.answer {{ margin: 0 0 2mm; padding: 2.5mm 4mm; border-left: 3px solid {LIGHT.ink}; background: {_TINT}; }}
.answer p:last-child {{ margin: 0; }}
.live {{ font-size: 9pt; overflow-wrap: anywhere; }}
a {{ color: #0067B0; }}
code {{ font-size: 0.92em; overflow-wrap: anywhere; }}
.answers {{ break-before: page; }}
.key {{ font-size: 17pt; }}
footer {{ margin-top: 6mm; padding-top: 3mm; border-top: 1px solid {_RULE}; font-size: 8.5pt; }}
@media print {{ main {{ max-width: none; padding: 0; }} }}
"""  # noqa: E501  a style sheet
