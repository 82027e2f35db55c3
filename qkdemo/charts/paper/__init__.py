"""An exhibit on paper, as Vega-Lite: from the same table and view that the browser draws, without a browser."""
