async function load(url, { retries = 3, wait = 200 } = {}) {
  for (let attempt = 0; attempt < retries; attempt++) {
    try {
      const response = await fetch(`${url}?attempt=${attempt}`);
      if (response.ok) return await response.json();
    } catch (error) {
      console.warn("Failed:", error.message);
    }
    await new Promise((resolve) => setTimeout(resolve, wait * 2 ** attempt));
  }
  return null;
}
