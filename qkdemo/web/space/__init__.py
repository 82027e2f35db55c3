"""Pictures in space, drawn by Plotly, which loads on these pages alone."""
