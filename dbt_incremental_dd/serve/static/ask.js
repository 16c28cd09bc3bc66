// Asks the server once. What it refuses is thrown with its `remedy`; one that is not there has neither.
export async function ask(path, query = {}) {
  const wanted = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(wanted).toString();
  return read(fetch(`${path}${text ? `?${text}` : ""}`, { credentials: "same-origin" }));
}

export const about = (name) => ask(`collections/${encodeURIComponent(name)}`);
export const rowsOf = (name, query) => ask(`collections/${encodeURIComponent(name)}/rows`, query);

/** Any SELECT. */
export async function sql(statement) {
  const headers = { "Content-Type": "application/json" };
  return read(fetch("sql", { method: "POST", headers, body: JSON.stringify({ statement }), credentials: "same-origin" }));
}

async function read(answering) {
  let answer;
  try {
    answer = await answering;
  } catch {
    throw Object.assign(new Error("The server does not answer."), { remedy: "", isAway: true });
  }
  const told = await answer.json().catch(() => ({ error: `The server answers ${answer.status}.` }));
  if (answer.ok) return told;
  throw Object.assign(new Error(told.error ?? `The server answers ${answer.status}.`), { remedy: told.remedy ?? "" });
}
