/** What is made of an object that does not change: once for each, and for as long as it is used. */
export function onceFor<Of extends object, Made>(make: (of: Of) => Made): (of: Of) => Made {
  const made = new WeakMap<Of, { value: Made }>();
  return (of) => {
    const known = made.get(of);
    if (known) return known.value;
    const value = make(of);
    made.set(of, { value });
    return value;
  };
}
