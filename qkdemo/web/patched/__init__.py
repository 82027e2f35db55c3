"""What of Streamlit's own work in a run is not done again, because nothing in it has changed."""
