"""What is wrong with somebody's own attention: measured in any PyTorch model, without changing what it computes.

* `watch`: every attention call of a model, measured per layer and head while it runs;
* `heads`: the measures of one call; `taps`: where the calls are seen; `report`: what came of them;
* `qk_norm`: whether QK norm is really on.

It needs torch alone.
"""
