"""The benchmark: what Forecastle serves per second, beside the limits of the machine that it runs on."""
