//! A third program for values of Rust: closures, futures, and more of the library's types.
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::error::Error;
use std::future::Future;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, RwLock};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::Duration;

static TABLE: RawWakerVTable = RawWakerVTable::new(|_| raw(), |_| {}, |_| {}, |_| {});
fn raw() -> RawWaker { RawWaker::new(std::ptr::null(), &TABLE) }

pub mod shop {
    pub const LIMIT: u32 = 42;
    pub static TOTAL: u32 = 43;
    #[derive(Clone, Copy, Debug)]
    pub enum Kind { Empty, Full(u8), Both { left: i32, right: i32 } }
    #[derive(Debug)]
    pub struct Point { pub x: i32, pub y: i32 }
    pub struct Pair(pub i32, pub u64);
    pub struct Foo<T> { pub inner: T }
    impl Point {
        #[inline(never)]
        pub fn sum(&self, by: i32) -> i32 { self.x + self.y + by }
        #[inline(never)]
        pub fn made(x: i32) -> Point { Point { x, y: -x } }
        #[inline(never)]
        pub fn grow(&mut self, by: i32) { self.x += by; keep(&self.x); }
        #[inline(never)]
        pub fn eaten(self) -> i32 { keep(&self); self.x - self.y }
    }
    impl<T: Copy> Foo<T> {
        #[inline(never)]
        pub fn get(&self) -> T { self.inner }
    }
    #[inline(never)]
    pub fn keep<T>(_: &T) {}
}
use shop::{keep, Foo, Kind, Pair, Point};

#[derive(Debug)]
struct Bad { code: i32 }
impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result { write!(f, "bad {}", self.code) }
}
impl Error for Bad {}
#[inline(never)]
fn fails(code: i32) -> Result<i32, Box<dyn Error>> { if code > 0 { Err(Box::new(Bad { code })) } else { Ok(code) } }

struct Twice { turn: u32 }
impl Future for Twice {
    type Output = u32;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context) -> Poll<u32> {
        self.turn += 1;
        if self.turn > 1 { Poll::Ready(self.turn) } else { Poll::Pending }
    }
}
async fn work(start: u32, name: String) -> u32 {
    let first = start + 1;
    let got = Twice { turn: 0 }.await;
    let second = first + got; // work's second part
    let more = Twice { turn: 0 }.await;
    keep(&name);
    second + more
}
fn polled<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    let waker = unsafe { Waker::from_raw(raw()) };
    future.as_mut().poll(&mut Context::from_waker(&waker))
}
#[inline(never)]
fn apply(run: &dyn Fn(i32) -> i32) -> i32 { run(3) }

fn closures() -> i32 {
    let copied = 6i32;
    let text = String::from("moved");
    let mut count = 10u64;
    let point = Point { x: 3, y: 4 };
    let pair = (1u8, String::from("two"));
    let by_ref = |a: i32| {
        let here = a + copied;
        here + point.x // in by_ref
    };
    let by_move = move |a: i32| {
        let long = text.len() as i32;
        a + long + copied // in by_move
    };
    let total = by_ref(1) + by_move(2);
    let mut by_mut = |a: u64| {
        count += a;
        keep(&count); // in by_mut
    };
    by_mut(5);
    let part = || {
        let second = pair.1.len();
        let inner = |more: usize| {
            let all = second + more + copied as usize;
            all + pair.1.len() // in inner
        };
        inner(2)
    };
    let size = part();
    let none = |a: i32| a + 1;
    let boxed: Box<dyn Fn(i32) -> i32> = Box::new(by_move);
    let sum = apply(&by_ref) + apply(&*boxed) + none(1);
    keep(&(&by_ref, &part, &none, &boxed)); // all closures
    total + sum + size as i32
}

fn futures() -> u32 {
    let mut whole = Box::pin(work(4, String::from("job")));
    let mut block = Box::pin(async {
        let inside = 5u32;
        let got = work(inside, String::from("sub")).await;
        got + inside
    });
    let idle = work(9, String::from("idle"));
    let _ = polled(&mut whole);
    let _ = polled(&mut block);
    keep(&idle); // suspended
    let _ = polled(&mut whole);
    let done = polled(&mut whole);
    keep(&(&whole, &block, &done)); // returned
    match done { Poll::Ready(number) => number, Poll::Pending => 0 }
}

fn library() -> usize {
    let mut tree = BTreeMap::new();
    for number in 0..20u16 { tree.insert(number, number * 2); }
    let empty_tree: BTreeMap<String, i32> = BTreeMap::new();
    let mut deque: VecDeque<&str> = VecDeque::new();
    deque.push_back("b"); deque.push_front("a");
    let mut set = HashSet::new(); set.insert(String::from("only"));
    let borrowed: Cow<str> = Cow::Borrowed("lent");
    let owned: Cow<str> = Cow::Owned(String::from("own"));
    let cow_list: Cow<[u8]> = Cow::Borrowed(&[1, 2, 3]);
    let path = PathBuf::from("/usr/lib");
    let slice: &Path = path.as_path();
    let os = std::ffi::OsString::from("os");
    let os_slice = os.as_os_str();
    let cstring = std::ffi::CString::new("c text").unwrap();
    let cstr = cstring.as_c_str();
    let duration = Duration::from_millis(2500);
    let range = 2..7u8; let incl = 2..=7i32; let from = 3..; let to = ..4u16; let full = ..;
    let nz = NonZeroU64::new(9).unwrap(); let onz = NonZeroU64::new(8); let nonz = NonZeroU64::new(0);
    let mutex = Mutex::new(5i32); let rwlock = RwLock::new(String::from("guarded"));
    let shared = Arc::new(Mutex::new(vec![1u8, 2]));
    let guard = mutex.lock().unwrap();
    let order = 1.cmp(&2); let reverse = Ordering::Greater;
    let good = fails(0); let bad = fails(7);
    let atomic = std::sync::atomic::AtomicU32::new(77); let flag = std::sync::atomic::AtomicBool::new(true);
    let cell = std::cell::UnsafeCell::new(4u8);
    let wrapped = std::num::Wrapping(250u8);
    let manual = std::mem::ManuallyDrop::new(3u16);
    let phantom: std::marker::PhantomData<u8> = std::marker::PhantomData;
    let pinned = Pin::new(&wrapped);
    let ip = std::net::Ipv4Addr::new(127, 0, 0, 1);
    let heap: std::collections::BinaryHeap<i32> = vec![3, 9, 1].into_iter().collect();
    let list: std::collections::LinkedList<i32> = vec![4, 5].into_iter().collect();
    let kind = Kind::Full(8); let both = Kind::Both { left: 1, right: 2 }; let none = Kind::Empty;
    let mut point = Point { x: 1, y: 2 }; let foo = Foo::<u8> { inner: 7 }; let pair = Pair(3, 4);
    point.grow(1);
    let array = [10i32, 20, 30, 40];
    let rest = &array[1..];
    keep(&(&tree, &empty_tree, &deque, &set, &borrowed, &owned, &cow_list, slice, os_slice, cstr, duration));
    keep(&(&range, &incl, &from, &to, full, nz, onz, nonz, &rwlock, &shared, order, reverse));
    keep(&(&good, &bad, &atomic, &flag, &cell, &wrapped, &manual, phantom, pinned, &ip, &heap, &list));
    keep(&(&kind, &both, &none, &foo, &pair, rest, &guard)); // library
    point.sum(1) as usize + foo.get() as usize + Point::made(3).eaten() as usize
}

fn main() {
    println!("{} {} {} {}", closures(), futures(), library(), shop::LIMIT + shop::TOTAL);
}
