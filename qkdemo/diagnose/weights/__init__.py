"""A checkpoint's weights: what of them is attention, and how large they let a logit become.

* `checkpoint`: tensors by range; `layers`: what is measured of each layer;
* `projections`: where W_q and W_k lie; `beside`: what else acts there;
* `gains`: those of a norm of q and k.
"""
