CREATE TABLE t(a int primary key,b text);INSERT INTO t VALUES(1,'x'),(2,'y');SELECT count(*),max(b) FROM t;
