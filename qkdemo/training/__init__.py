"""The small transformer that trains live: many runs at once, each the same as if it ran alone.

* `settings`: the dials of a run; `schedule`: its learning rate; `tasks`: what it learns;
* `parameters`: where each weight stands, and its first value; `remedies`: what is done about q and k;
* `model`: the forward pass; `optimizer`: AdamW; `trainer`: one step of all runs; `telemetry`: what is read off it;
* `outcome`: what became of a run, in words with definitions; `sensitivity`: loss against learning rate;
* `twins`, `rates`, `lessons`: what the pages show of it; `program`: the same as a standalone PyTorch file;
* `plan`, `record`, `store`: what is trained, and what is kept of it; `pool`, `process`, `worker`, `series`: by whom;
* `train_command`, `sensitivity_command`: the same from a shell.
"""
