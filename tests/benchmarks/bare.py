"""The least a Streamlit page with a dial can be: what the app's own cost is compared with."""

import streamlit as st

st.write(st.slider("Dial", 0, 100, 50, key="dial"))
