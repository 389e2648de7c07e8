"""Other optimisers on the same tables, under the same noise, beside the methods of io-autotune."""
