"""The small transformer that trains live: many runs at once, each the same as if it ran alone.

* `settings`: the dials of a run; `schedule`: its learning rate; `tasks`: what it learns, `sentences` among it;
* `network`: where each weight stands, its first value, the forward pass and its derivatives;
* `remedies`: what is done about q and k;
* `optimizer`: AdamW; `trainer`: one step of all runs; `telemetry`: what is read off it;
* `outcome`: what became of a run, in words with definitions.
"""
