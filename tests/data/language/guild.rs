//! Traits, generics and statics of Rust, for names and calls.
use std::collections::HashMap;
use std::fmt::{Debug, Display};
use std::ops::{Add, Deref, Index};

pub trait Area {
    const SIDES: u32;
    fn area(&self) -> f64;
    fn doubled(&self) -> f64 { self.area() * 2.0 }
    fn named() -> &'static str where Self: Sized { "area" }
}
pub trait Scale<T> { fn scale(&mut self, by: T) -> T; }
#[derive(Debug, Clone, PartialEq)]
pub struct Square { pub side: f64 }
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub u32);
pub mod inner {
    #[derive(Debug, Default)]
    pub struct Pair<A, B> { pub first: A, pub second: B }
    impl<A: Copy, B: Copy> Pair<A, B> {
        #[inline(never)]
        pub fn swapped(&self) -> Pair<B, A> { Pair { first: self.second, second: self.first } }
        #[inline(never)]
        pub fn first(&self) -> A { self.first }
    }
    pub mod deep {
        pub static mut HITS: u64 = 3;
        pub static NAME: &str = "deep";
        pub const LIMIT: usize = 4;
        #[inline(never)]
        pub fn bump(by: u64) -> u64 { unsafe { HITS += by; HITS } }
    }
}
impl Area for Square {
    const SIDES: u32 = 4;
    #[inline(never)]
    fn area(&self) -> f64 { self.side * self.side }
}
impl Area for Id {
    const SIDES: u32 = 1;
    #[inline(never)]
    fn area(&self) -> f64 { self.0 as f64 }
}
impl Scale<f64> for Square {
    #[inline(never)]
    fn scale(&mut self, by: f64) -> f64 { self.side *= by; self.side }
}
impl Scale<u8> for Square {
    #[inline(never)]
    fn scale(&mut self, by: u8) -> u8 { self.side += by as f64; by }
}
impl Square {
    pub const UNIT: Square = Square { side: 1.0 };
    #[inline(never)]
    pub fn new(side: f64) -> Self { Square { side } }
    #[inline(never)]
    pub fn bigger(&self, than: &Square) -> bool { self.side > than.side }
    #[inline(never)]
    pub fn grow(&mut self, by: f64) -> &mut Self { self.side += by; self }
    #[inline(never)]
    pub fn into_side(self) -> f64 { self.side }
    #[inline(never)]
    pub fn label(&self, prefix: &str) -> usize { prefix.len() + self.side as usize }
}
impl Add for Id { type Output = Id; #[inline(never)] fn add(self, other: Id) -> Id { Id(self.0 + other.0) } }
pub struct Shelf<T> { items: Vec<T> }
impl<T> Index<usize> for Shelf<T> { type Output = T; #[inline(never)] fn index(&self, at: usize) -> &T { &self.items[at] } }
pub struct Wrap(Square);
impl Deref for Wrap { type Target = Square; #[inline(never)] fn deref(&self) -> &Square { &self.0 } }
impl Drop for Wrap { fn drop(&mut self) { keep(&self.0.side); } }
#[repr(u8)]
#[derive(Debug, Clone, Copy)]
pub enum Level { Low = 1, Mid = 50, High = 200 }
#[derive(Debug, Clone)]
pub enum Message { Quit, Move { x: i32, y: i32 }, Write(String), Colour(u8, u8, u8), Nested(Box<Message>), Maybe(Option<u16>) }
#[repr(C)]
pub union Bits { int: u32, float: f32 }
static TABLE: [Id; 3] = [Id(1), Id(2), Id(3)];
static GREETING: &str = "hello";
const ANSWER: i32 = 42;
thread_local! { static LOCAL: std::cell::Cell<u32> = const { std::cell::Cell::new(5) }; }

#[inline(never)]
pub fn keep<T: ?Sized>(_: &T) {}
#[inline(never)]
fn total(items: &[u32]) -> u32 { items.iter().sum() }
#[inline(never)]
fn generic<T: Display + ?Sized, const N: usize>(item: &T) -> usize { let text = item.to_string(); text.len() * N }
#[inline(never)]
fn dynamic(item: &dyn Debug) -> String { format!("{:?}", item) }
#[inline(never)]
fn boxed(kind: u8) -> Box<dyn Fn(u8) -> u8> { Box::new(move |more| more + kind) }
#[inline(never)]
fn divided(a: i32, b: i32) -> Result<i32, String> { if b == 0 { Err("zero".to_string()) } else { Ok(a / b) } }
#[inline(never)]
fn maybe(n: i32) -> Option<i32> { if n > 0 { Some(n) } else { None } }
#[inline(never)]
fn pair(a: u8) -> (u8, char) { (a, 'p') }

fn main() {
    let mut square = Square::new(3.0);
    let other = Square { side: 1.5 };
    let id = Id(7);
    let pairs = inner::Pair { first: 1u8, second: 2.5f32 };
    let swapped = pairs.swapped();
    let shelf = Shelf { items: vec![10u16, 20, 30] };
    let wrap = Wrap(Square { side: 9.0 });
    let level = Level::Mid; let high = Level::High;
    let quit = Message::Quit; let moved = Message::Move { x: 1, y: -2 }; let write = Message::Write("text".into());
    let colour = Message::Colour(1, 2, 3); let nested = Message::Nested(Box::new(Message::Maybe(Some(4))));
    let messages = vec![quit.clone(), moved.clone(), colour.clone()];
    let bits = Bits { float: 1.0 };
    let array = [5u32, 6, 7, 8]; let slice = &array[1..3]; let matrix = [[1i8, 2], [3, 4]];
    let text = String::from("caf\u{e9}"); let view = &text[..3]; let letter = '\u{2603}'; let newline = '\n';
    let byte = b'a'; let negative = -5i64; let wide = u128::MAX; let real = 0.1f32; let double = 1e100f64;
    let mut map = HashMap::new(); map.insert(id, "seven");
    let area: &dyn Area2 = &square; let areas: Vec<Box<dyn Area2>> = vec![Box::new(Id(3)), Box::new(other.clone())];
    let pointer: *const u32 = &array[0]; let reference = &id; let double_reference = &reference;
    let function: fn(&[u32]) -> u32 = total; let closure = |n: u32| n + id.0; let adder = boxed(4);
    let nothing: Option<&Square> = None; let something = Some(&other); let number = Some(3u8); let result = divided(7, 2); let failed = divided(1, 0);
    let range = 1..4; let unit = (); let tuple = (1u8, "two", [3.0f64]); let nested_tuple = ((1, 2), (3, (4, 5)));
    let count = generic::<str, 2>("abc") + generic::<i32, 3>(&12) + dynamic(&id).len();
    let summed = id + Id(1);
    let sum = total(&array) + closure(1) + adder(2) as u32 + shelf[1] as u32 + LOCAL.get();
    let scaled = Scale::<f64>::scale(&mut square, 2.0) + Scale::<u8>::scale(&mut square, 1) as f64;
    keep(&(&pairs, &swapped, &level, &high, &quit, &moved, &write, &colour, &nested, &messages)); keep(&bits);
    keep(&(slice, &matrix, view, letter, newline, byte, negative, wide, real, double, &map));
    keep(&(pointer, double_reference, function, nothing, something, number, &result, &failed, &range, unit, tuple, nested_tuple));
    keep(&(count, sum, scaled, summed, TABLE[1], GREETING, ANSWER, inner::deep::NAME, maybe(1), pair(2))); // look
    inner::deep::bump(1);
    println!("{} {} {} {}", square.area() + square.doubled() + id.doubled(), wrap.bigger(&other), square.label("ab"), Square::named());
    println!("{:?} {} {}", square.grow(1.0), other.into_side(), pairs.first() as f32 + swapped.first());
    println!("{}", areas.iter().map(|one| one.area2()).sum::<f64>());
}
pub trait Area2 { fn area2(&self) -> f64; }
impl<T: Area> Area2 for T { #[inline(never)] fn area2(&self) -> f64 { self.area() + T::SIDES as f64 } }
