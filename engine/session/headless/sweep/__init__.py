"""Many runs: the cells of a matrix, each of which is one run of a subcommand.

A cell's work (`cells`) is a request of `engine.session.protocol.requests`, carried out
(`cell_runs`) in a warm process with limits of time and memory (`warm_worker`). Executors hand
cells to such processes: `executors` lists them, an executor is a module beside it and a line
there. What came out is published in a data set of Parquet files, a cell at a time (`results`): a
cell that is there is finished, whoever was killed when.
"""
