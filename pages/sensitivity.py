"""The sensitivity page: final loss against learning rate, a curve per remedy, drawn as its runs finish."""

import streamlit as st

from qkdemo.labs.learning_rates import lab as rates
from qkdemo.messages import say
from qkdemo.web.lab.controls import dials
from qkdemo.web.training.rates_page import curves, offer
from qkdemo.web.training.rates_runs import PREFIX, attend

settings = dials(rates.Settings, rates.PRESETS, PREFIX)
sweep = attend(settings)
if isinstance(sweep, str):
    st.title(say("page.sensitivity"))
    st.info(sweep)
    st.stop()
curves(sweep)
offer(sweep)
