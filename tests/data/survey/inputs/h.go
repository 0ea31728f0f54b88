package main
import ("fmt";"net";"bufio";"sync")
func main(){l,_:=net.Listen("tcp","127.0.0.1:0");go func(){c,_:=l.Accept();fmt.Fprintf(c,"hi\n");c.Close()}();c,e:=net.Dial("tcp",l.Addr().String());if e!=nil{panic(e)};s,_:=bufio.NewReader(c).ReadString(10);fmt.Print(s);var w sync.WaitGroup;n:=make([]int,8);for i:=range n{w.Add(1);go func(i int){defer w.Done();n[i]=i*i}(i)};w.Wait();fmt.Println(n)}
