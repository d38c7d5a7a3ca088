// Pieces that several views use.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "./api.js";
import { plain } from "./text.js";

// What a question answers, asked again when `on` changes; the old answer stays until then.
export function useAnswer(name, values, on) {
  const [state, set] = useState({});
  const key = JSON.stringify([name, values]);

  useEffect(() => {
    const end = new AbortController();

    if (name == null) {
      set({});
      return undefined;
    }
    ask(name, values, end.signal).then(
      (answer) => set({ answer, key }),
      (failure) => end.signal.aborted || set({ failure, key }),
    );
    return () => end.abort();
  }, [key, on]);
  return state.key === key ? state : { waits: true };
}

// Shows the answer by `children`, or why there is none.
export function Answer({ of, children }) {
  if (of.failure)
    return <p class="failure" role="alert">{plain(of.failure.message)}</p>;
  if (!of.answer)
    return <p class="waits">…</p>;
  return children(of.answer);
}

// A button that changes something: first it shows what would happen, then it asks.
export function Act({ label, danger, question, values, dry, confirm, done, fields, children }) {
  const [state, set] = useState(null); // { plan | failure, busy }
  const [given, give] = useState({});
  const dialog = useRef();
  const all = { ...values, ...given };

  async function begin() {
    set({ busy: true });
    dialog.current.showModal();
    if (!dry) {
      set({});
      return;
    }
    try {
      const plan = await ask(dry.question ?? question, { ...values, ...dry.values });
      set({ plan, seen: dry.seen?.(plan) });
    } catch (failure) {
      set({ failure });
    }
  }
  async function go() {
    set({ ...state, busy: true });
    try {
      const answer = await ask(question, { ...all, ...state.seen }); // what was shown, or nothing
      dialog.current.close();
      set(null);
      done?.(answer);
    } catch (failure) {
      set({ failure });
    }
  }
  return (
    <>
      <button class={danger ? "danger" : ""} onClick={begin}>{label}</button>
      <dialog ref={dialog} onClose={() => set(null)} aria-label={label}>
        <h2>{label}</h2>
        {state?.failure && <p class="failure" role="alert">{plain(state.failure.message)}</p>}
        {state?.failure?.answer && children?.(state.failure.answer)}
        {state?.plan && children?.(state.plan)}
        {state && !state.busy && !state.failure && confirm && <p>{confirm}</p>}
        {fields?.map((f) => (
          <label>{f.label}
            <input value={given[f.key] ?? ""}
              onInput={(e) => give({ ...given, [f.key]: e.target.value || undefined })} />
          </label>
        ))}
        <p class="buttons">
          <button onClick={() => dialog.current.close()}>Cancel</button>
          <button class={danger ? "danger" : "main"} onClick={go}
            disabled={!state || state.busy || !!state.failure}>{label}</button>
        </p>
      </dialog>
    </>
  );
}
