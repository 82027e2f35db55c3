"""The attention of a PyTorch model, measured while it runs, without changing what it computes. It needs torch alone.

* `watch`: every attention call, per layer and head; `heads`: the measures of one call; `taps`: where calls are seen;
* `report`: what came of them; `qk_norm`: whether QK norm is really on.
"""
