"""The judge of batching policies: the real batcher over simulated time, seeded arrivals, and models by their cost."""
