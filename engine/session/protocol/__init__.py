"""The language of front ends: plain, frozen records that cross between threads.

`config` is what the user asked for at the start, `commands` what a front end asks of a guest while
it stands or runs, `kinds` the table of what each of these does to the guest, `requests` what it
asks to be done as a whole, `events` and `views` what it is told and shown, `report` what is said
about a run once it is over. `rows` is what a front end needs to read the rows of events.
"""
