const text = "the quick brown fox jumps over the lazy dog";

const counts = text
  .split(/\s+/)
  .filter((word) => word.length > 3)
  .reduce((all, word) => ({ ...all, [word]: (all[word] ?? 0) + 1 }), {});

// Those that come most often are first.
const sorted = Object.entries(counts).sort(([, a], [, b]) => b - a);
console.log(sorted.slice(0, 5));
