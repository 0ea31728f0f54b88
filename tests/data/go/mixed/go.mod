module mixed

go 1.19
