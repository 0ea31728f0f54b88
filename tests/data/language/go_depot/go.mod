module depot

go 1.18
