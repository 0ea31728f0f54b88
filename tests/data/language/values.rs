use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

pub const LIMIT: u32 = 42;
pub static COUNTER: i64 = -7;
static NAMES: [&str; 2] = ["ab", "cd"];

#[derive(Clone, Copy, Debug)]
pub struct Point { x: i32, y: i32 }
pub struct Pair(u8, f64);
pub struct Unit;
#[derive(Clone, Debug)]
pub enum Shape { Circle { radius: f64 }, Square(u32), Many(Vec<u8>), Empty }
#[derive(Clone, Copy, Debug)]
pub enum Color { Red, Green = 5, Blue }
pub enum One { Only(i32) }
pub enum Void {}
pub union Bits { i: u32, f: f32 }

pub trait Speak { fn speak(&self) -> usize; }
pub struct Dog { name: String, age: u8 }
impl Speak for Dog { fn speak(&self) -> usize { self.name.len() + self.age as usize } }
impl Point {
    #[inline(never)]
    pub fn sum(&self, by: i32) -> i32 { let total = self.x + self.y + by; total }
}
mod inner {
    pub struct Deep<T> { pub item: T, pub next: Option<Box<Deep<T>>> }
    #[inline(never)]
    pub fn twist<T: Copy>(value: T, count: usize) -> (T, usize) { let r = (value, count + 1); r }
    pub static FLAG: bool = true;
}
#[inline(never)]
fn greet(name: &str, n: u32, o: Option<i32>) -> usize {
    let k = name.len() + n as usize;
    println!("{} {} {:?}", name, n, o);
    k
}
#[inline(never)]
fn look<T>(_: &T) {}
#[inline(never)]
fn stop(here: usize) -> Point { let p = Point { x: here as i32, y: 2 }; p }

fn main() {
    let byte: u8 = 200; let short: i16 = -300; let word: u32 = 4_000_000_000; let long: i64 = -5;
    let big: u128 = 1 << 100; let size: usize = 12; let neg: i8 = -1;
    let yes = true; let letter = 'x'; let snow = '\u{2603}'; let quote = '\'';
    let half: f32 = 0.5; let real: f64 = 2.25;
    let unit = ();
    let pair = (1i32, "two"); let single = (7u8,); let nested = ((1u8, 2u8), [3u16, 4]);
    let point = Point { x: 3, y: -4 }; let tup = Pair(9, 1.5); let nothing = Unit;
    let array = [1i32, 2, 3, 4, 5]; let grid = [[1u8, 2], [3, 4]]; let zeros = [0u8; 20];
    let points = [point, Point { x: 1, y: 1 }];
    let text = "hello"; let empty = ""; let esc = "a\"b\n\t\u{e9}";
    let slice = &array[1..4]; let bytes = &zeros[..3]; let strs = &NAMES[..];
    let owned = String::from("apple pie"); let blank = String::new();
    let vec = vec![10i32, 20, 30]; let vnone: Vec<u8> = Vec::new(); let vs = vec![String::from("a"), String::from("b")];
    let vv = vec![vec![1u8], vec![2, 3]];
    let vp = vec![point; 2];
    let boxed = Box::new(77i32); let boxp = Box::new(point); let bslice: Box<[u8]> = vec![1u8, 2].into_boxed_slice();
    let bstr: Box<str> = "boxed".into();
    let some = Some(4i32); let none: Option<i32> = None;
    let refopt: Option<&i32> = Some(&array[2]); let norefopt: Option<&i32> = None;
    let sopt = Some(String::from("in")); let nosopt: Option<String> = None;
    let bopt: Option<Box<i32>> = Some(Box::new(5)); let charopt = Some('q'); let boolopt = Some(true);
    let ok: Result<u32, String> = Ok(3); let err: Result<u32, String> = Err(String::from("bad"));
    let circle = Shape::Circle { radius: 1.5 }; let square = Shape::Square(4);
    let many = Shape::Many(vec![1, 2]); let shape_empty = Shape::Empty;
    let red = Color::Red; let green = Color::Green; let blue = Color::Blue; let only = One::Only(3);
    let oshape: Option<Shape> = Some(Shape::Square(8)); let onshape: Option<Shape> = None;
    let ocolor = Some(Color::Blue);
    let bits = Bits { f: 1.0 };
    let rc = Rc::new(point); let rc2 = rc.clone(); let weak = Rc::downgrade(&rc); let arc = Arc::new(5u64);
    let rcs: Rc<str> = Rc::from("shared");
    let cell = Cell::new(8i32); let refcell = RefCell::new(vec![1u8, 2]); let borrowed = refcell.borrow();
    let mut deque: VecDeque<i32> = VecDeque::with_capacity(4);
    for i in 0..4 { deque.push_back(i); } deque.pop_front(); deque.pop_front(); deque.push_back(9);
    let mut map: HashMap<&str, i32> = HashMap::new(); map.insert("a", 1);
    let mut set: HashSet<u16> = HashSet::new(); set.insert(300);
    let mut tree: BTreeMap<i32, String> = BTreeMap::new();
    for i in 0..3 { tree.insert(i, format!("v{}", i)); }
    let mut btset: BTreeSet<u8> = BTreeSet::new(); for i in 0..30 { btset.insert(i); }
    let emap: HashMap<u8, u8> = HashMap::new(); let ebt: BTreeMap<u8, u8> = BTreeMap::new();
    let dog = Dog { name: String::from("rex"), age: 3 };
    let dynref: &dyn Speak = &dog; let dynbox: Box<dyn Speak> = Box::new(Dog { name: String::from("fido"), age: 4 });
    let captured = 6i32; let closure = |a: i32| a + captured + point.x;
    let func: fn(i32) -> i32 = |a| a + 1;
    let pref = &point; let ptr: *const i32 = &array[0]; let mut mutable = 5i32; let mref = &mut mutable; *mref += 1;
    let pp = &pref;
    let list = inner::Deep { item: 1u8, next: Some(Box::new(inner::Deep { item: 2, next: None })) };
    let range = 1..5usize; let incl = 1..=3u8; let nz = std::num::NonZeroU32::new(6).unwrap();
    let dur = std::time::Duration::from_millis(1500);
    let ostr = std::ffi::OsString::from("os");
    let res = greet(&owned, 7, some) + closure(2) as usize + func(3) as usize;
    let tw = inner::twist('z', 4);
    let at = stop(res);
    look(&(byte, short, word, long, big, size, neg, yes, letter, snow, quote)); look(&(half, real, unit, &pair, &single, &nested, &tup, &nothing));
    look(&(&grid, &zeros, &points, text, empty, esc, slice, bytes, strs)); look(&(&blank, &vec, &vnone, &vs, &vv, &vp, &boxed, &boxp, &bslice, &bstr));
    look(&(none, refopt, norefopt, &sopt, &nosopt, &bopt, charopt, boolopt, &ok, &err)); look(&(&circle, &square, &many, &shape_empty, red, green, blue, &only));
    look(&(&oshape, &onshape, ocolor, &rc2, &weak, &arc, &rcs, &cell, &borrowed)); look(&bits);
    look(&(&deque, &map, &set, &tree, &btset, &emap, &ebt, dynref, &dynbox)); look(&(pp, ptr, &list, &range, &incl, nz, dur, &ostr, &tw, at));
    println!("{} {} {} {}", LIMIT, COUNTER, NAMES[1], inner::FLAG);
    println!("{}", dynref.speak() + dynbox.speak() + pref.sum(1) as usize);
}
