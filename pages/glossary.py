"""The words of the field, each with a sentence, a formula and a picture; and where statements of fact were read."""

import streamlit as st

from qkdemo.messages import say
from qkdemo.web.track.glossary import reference_list, terms_shown, wanted, word_card

st.title(say("glossary.page.title"))
st.markdown(say("glossary.page.lead"))
text = st.text_input(say("glossary.page.find"), key="glossary:find", value=wanted())
found = terms_shown(text)
if not found:
    st.info(say("glossary.page.none"))
for at in range(0, len(found), 3):
    for term, column in zip(found[at : at + 3], st.columns(3), strict=False):
        with column.container(border=True, height="stretch"):
            word_card(term)
st.header(say("glossary.page.references"), anchor="references")
st.markdown(say("glossary.page.references_lead"))
reference_list()
