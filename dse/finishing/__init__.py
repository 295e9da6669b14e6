"""What a chosen design still lacks: FIFO depths, dies, memories."""
