"""The quizzes on the page."""
