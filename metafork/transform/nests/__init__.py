"""What directives know of loop nests: which loop holds all of the work, new indices, strips, rolled statements."""
