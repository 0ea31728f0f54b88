//! A second program for values of Rust: traits, generics, closures, a future, panics.
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::cell::RefCell;
use std::task::{Context, Poll, Waker};

pub mod geo {
    pub trait Area { fn area(&self) -> f64; fn name(&self) -> String { String::from("shape") } }
    #[derive(Debug, Clone, PartialEq)]
    pub struct Rect { pub w: f64, pub h: f64 }
    pub struct Round(pub f64);
    impl Area for Rect { #[inline(never)] fn area(&self) -> f64 { self.w * self.h } }
    impl Area for Round { #[inline(never)] fn area(&self) -> f64 { self.0 * self.0 * 3.0 } }
    #[repr(u8)]
    #[derive(Clone, Copy)]
    pub enum Level { Low = 1, High = 200 }
    #[repr(i16)]
    pub enum Signed { Minus(u8) = -5, Plus { v: u32 } = 300 }
    pub static ORIGIN: Rect = Rect { w: 0.0, h: 0.5 };
    pub static mut CALLS: u32 = 3;
}
use geo::Area;

pub struct Node { id: u16, parent: RefCell<Weak<Node>>, children: RefCell<Vec<Rc<Node>>> }
pub enum Tree { Leaf(i8), Branch(Box<Tree>, Box<Tree>) }
pub enum Niche { Text(String), Number(u64), Nothing }
pub struct Wrapper<'a, T> { inner: &'a T, tag: char }
struct Twice { turn: u8 }
impl Future for Twice {
    type Output = u32;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
        self.turn += 1;
        if self.turn < 2 { Poll::Pending } else { Poll::Ready(5) }
    }
}
async fn work(start: u32) -> u32 { let first = start + 1; let got = Twice { turn: 0 }.await; first + got }

#[inline(never)]
fn measure(what: &dyn Area, times: u32, label: &str) -> f64 { let one = what.area(); println!("{label}"); one * times as f64 }
#[inline(never)]
fn apply<F: Fn(i64) -> i64>(f: F, n: i64) -> i64 { let out = f(n); out }
#[inline(never)]
fn keep<T>(_: &T) {}

fn main() {
    let rect = geo::Rect { w: 2.0, h: 1.5 };
    let round = geo::Round(2.0);
    let all: Vec<Box<dyn Area>> = vec![Box::new(rect.clone()), Box::new(geo::Round(1.0))];
    let leaf = Rc::new(Node { id: 3, parent: RefCell::new(Weak::new()), children: RefCell::new(vec![]) });
    let root = Rc::new(Node { id: 1, parent: RefCell::new(Weak::new()), children: RefCell::new(vec![leaf.clone()]) });
    *leaf.parent.borrow_mut() = Rc::downgrade(&root);
    let tree = Tree::Branch(Box::new(Tree::Leaf(-1)), Box::new(Tree::Leaf(2)));
    let words = [Niche::Text(String::from("t")), Niche::Number(9), Niche::Nothing];
    let wrap = Wrapper { inner: &rect, tag: 'w' };
    let low = geo::Level::Low; let high = geo::Level::High;
    let minus = geo::Signed::Minus(7); let plus = geo::Signed::Plus { v: 70000 };
    let shift = 10i64; let add = move |x: i64| x + shift;
    let nest: Result<Option<(u8, char)>, ()> = Ok(Some((1, 'é')));
    let deep: Option<Option<bool>> = Some(None); let deeper = Some(Some(false));
    let i128s = [-1i128, 1 << 70]; let floats = [1.0f32, -0.0, f32::INFINITY];
    let nan = f64::NAN; let bits = 0xffu8; let max = u64::MAX; let min = i64::MIN;
    let long = "x".repeat(300); let rep = "aaaaaaaaaaaaaaaaaaaab";
    let mut sorted: std::collections::BTreeMap<String, Vec<u8>> = Default::default();
    for i in 0..20u8 { sorted.insert(format!("k{i:02}"), vec![i; (i % 3) as usize]); }
    let opts: Vec<Option<u16>> = vec![None, Some(1)];
    let total = measure(&rect, 2, "two") + measure(&round, 1, "one") + apply(add, 5) as f64;
    let mut future = Box::pin(work(4));
    let mut context = Context::from_waker(Waker::noop());
    let polled = future.as_mut().poll(&mut context);
    keep(&(&all, &root, &tree, &words, &wrap, low, high, &minus, &plus, &nest, deep, deeper));
    keep(&(&i128s, &floats, nan, bits, max, min, &long, rep, &sorted, &opts, total, polled));
    println!("{:?}", geo::ORIGIN);
    let index = all.len() + 5;
    if std::env::args().count() > 1 { println!("{}", i128s[index % 2 + 2]); }
    keep(&unsafe { geo::CALLS });
}
