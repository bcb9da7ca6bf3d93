"""What is known of a program: facts, conditions, references and their bounds."""
