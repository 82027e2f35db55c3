"""A checkpoint's weights: what of them is attention, and how large they let a logit become.

* `checkpoint`: tensors by range; `layers`: every layer that is read, and what is said against it; `layer`: one of them;
* `projections`: where W_q and W_k lie; `beside`: what else acts there;
* `codes`: names of what a quantiser stores; `scale`: what multiplies q · k;
* `gains`: those of a norm of q and k.
"""
