"""Plan -> runs -> results: what is asked for, the only place that joins the rooms, the engine and the workspace."""
