use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::panic;
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Debug, Clone)]
struct Sample<T> {
    at: u64,
    value: T,
}

#[derive(Debug)]
enum Shape {
    Dot,
    Circle(f32),
    Polygon { sides: usize, names: Vec<&'static str> },
}

struct Probe<'a> {
    label: &'a str,
    samples: VecDeque<Sample<i16>>,
    reads: Cell<u32>,
    log: RefCell<Vec<String>>,
    index: BTreeMap<u8, &'a str>,
}

impl<'a> Probe<'a> {
    fn read(&mut self, at: u64) -> Sample<i16> {
        let sample = Sample { at, value: (at as i16) * -3 };
        self.reads.set(self.reads.get() + 1);
        self.samples.push_back(sample.clone());
        self.log.borrow_mut().push(format!("read {}", at));
        self.index.insert(at as u8, self.label);
        sample
    }
}

fn largest<T: PartialOrd + Copy>(values: &[T]) -> T {
    let mut best = values[0];
    for &value in values {
        if value > best {
            best = value;
        }
    }
    best
}

fn area(shape: &Shape) -> f32 {
    match shape {
        Shape::Dot => 0.0,
        Shape::Circle(radius) => radius * radius * 3.0,
        Shape::Polygon { sides, names } => (*sides + names.len()) as f32,
    }
}

fn apply<F: Fn(i32) -> i32>(f: F, n: i32) -> i32 {
    f(n)
}

fn risky(divisor: i32) -> i32 {
    if divisor == 0 {
        panic!("divisor of {}", divisor);
    }
    100 / divisor
}

fn add_up(shared: Arc<Mutex<i64>>, amount: i64) -> i64 {
    let mut guard = shared.lock().unwrap();
    *guard += amount;
    *guard
}

fn main() {
    let mut probe = Probe {
        label: "north",
        samples: VecDeque::new(),
        reads: Cell::new(0),
        log: RefCell::new(Vec::new()),
        index: BTreeMap::new(),
    };
    let first = probe.read(4);
    let second = probe.read(7);
    let shapes = [Shape::Dot, Shape::Circle(2.0), Shape::Polygon { sides: 3, names: vec!["a", "b"] }];
    let mut areas = [0f32; 3];
    for (i, shape) in shapes.iter().enumerate() {
        areas[i] = area(shape);
    }
    let big = largest(&[3i64, 9, 4]);
    let wide = largest(&areas);
    let offset = 5;
    let moved = apply(|x| x + offset, 37);
    let low = 0x01020304u32.to_le_bytes()[0];
    let shared = Arc::new(Mutex::new(10i64));
    let other = Arc::clone(&shared);
    let handle = thread::Builder::new().name("adder".into()).spawn(move || add_up(other, 32)).unwrap();
    let joined = handle.join().unwrap();
    panic::set_hook(Box::new(|_| {}));
    let caught = panic::catch_unwind(|| risky(0));
    let fine = risky(8);
    println!("{:?} {:?} {} {} {} {} {} {:?} {} {}", first, second, big, wide, moved, low, joined,
        caught.is_err(), fine, shapes.len());
}
