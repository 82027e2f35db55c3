"""What is wrong with somebody's own attention.

* `watching`: the attention of a PyTorch model, measured while it runs; it needs torch alone;
* `readers`: what is brought, read with limits; `tensors`, `checkpoint`: what these hold; `curves`: what a log says;
* `findings`: what is said of it; `paper`: as HTML and JSON; `samples`: an example of each kind.
"""
