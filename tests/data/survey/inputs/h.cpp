#include <iostream>
#include <thread>
#include <vector>
#include <atomic>
#include <future>
int main(){std::atomic<int> s{0};std::vector<std::thread> v;for(int i=0;i<4;i++)v.emplace_back([&]{for(int k=0;k<100;k++)s++;});for(auto&t:v)t.join();auto f=std::async(std::launch::async,[]{return 6*7;});std::cout<<s<<" "<<f.get()<<std::endl;try{throw 3;}catch(int e){std::cout<<e<<"\n";}}
