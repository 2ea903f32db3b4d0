module github.com/mooncake-go/mooncake-master

go 1.26.8
