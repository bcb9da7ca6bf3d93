"""What strategies know about loops: the spine of a nest, dependences, grid indices, rolling, simplification."""
