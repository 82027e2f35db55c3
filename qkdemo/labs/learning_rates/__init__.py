"""Over which range of learning rates does a model train, and how far does a remedy move its right wall?"""
