module flow

go 1.18
