"""How charts look."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d")
"""The Okabe-Ito palette, which people with colour blindness can tell apart."""

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""vl-convert contains Liberation Sans, so that text has the same size on every machine."""

CONFIG = {
    "font": FONT,
    "background": "white",
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "grid": True,
        "gridColor": "#e3e6ea",
        "domainColor": "#8a929c",
        "tickColor": "#8a929c",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
    "legend": {
        "labelFontSize": 12,
        "symbolSize": 90,
        "labelLimit": 340,
        "orient": "bottom",
        "columns": 3,
        "columnPadding": 30,
        "rowPadding": 6,
    },
    "title": {"fontSize": 13, "anchor": "start", "frame": "group"},
}
