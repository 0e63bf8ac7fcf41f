"""What was asked: the model and one front end a language."""
