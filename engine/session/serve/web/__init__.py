"""The terminal interface in a browser.

`webserving` answers requests by textual-serve and starts an interface for each page,
`connection_limits` lets connections in; the page itself is `app_index.html`, the name by which
textual-serve asks for it.
"""
