// A text that the person reads whole before they decide: from its beginning, as much as the screen
// holds, with the keys of Pi's own lists.
//
// Where Pi has no screen, its client shows the text in an editor instead.

import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { wrapTextWithAnsi } from "@earendil-works/pi-tui";

/** Lines of the screen that are not the text's: Pi's footer, the title, and the hint. */
const LINES_AROUND = 10;
const LINES_MIN = 5;

/** Shows a text; returns whether the person goes on from it. */
export async function read(ctx: ExtensionContext, title: string, text: string, signal: AbortSignal): Promise<boolean> {
	const seen = await ctx.ui.custom<"on" | "left">((tui, theme, keys, done) => {
		let top = 0;
		let last = 0;
		const page = () => Math.max(LINES_MIN, tui.terminal.rows - LINES_AROUND);
		const leave = () => done("left");
		signal.addEventListener("abort", leave, { once: true });
		return {
			// On a full screen, Pi keeps the keys that page for its transcript unless it is told so.
			capturesViewportInput: true,
			render(width: number): string[] {
				const lines = text.replaceAll("\t", "    ").split("\n").flatMap((line) => (line === "" ? [""] : wrapTextWithAnsi(line, width - 2)));
				last = Math.max(0, lines.length - page());
				top = Math.min(top, last);
				const shown = lines.slice(top, top + page()).map((line) => ` ${line}`);
				const rest = last > top ? `${last - top} more lines below` : "the end";
				const hint = `${rest} · ↑↓ page up/down to read, Enter to decide, Esc to leave it`;
				const rule = theme.fg("border", "─".repeat(width));
				const head = wrapTextWithAnsi(theme.fg("accent", title), width - 2).map((line) => ` ${line}`);
				const foot = wrapTextWithAnsi(theme.fg("dim", hint), width - 2).map((line) => ` ${line}`);
				return [rule, ...head, "", ...shown, "", ...foot, rule];
			},
			handleInput(data: string): void {
				if (keys.matches(data, "tui.select.confirm")) return done("on");
				if (keys.matches(data, "tui.select.cancel")) return leave();
				if (keys.matches(data, "tui.select.up")) top -= 1;
				if (keys.matches(data, "tui.select.down")) top += 1;
				if (keys.matches(data, "tui.select.pageUp")) top -= page();
				if (keys.matches(data, "tui.select.pageDown")) top += page();
				top = Math.min(Math.max(0, top), last);
				tui.requestRender();
			},
			invalidate(): void {},
			dispose: () => signal.removeEventListener("abort", leave),
		};
	});
	if (seen !== undefined) return seen === "on";
	const edited = await ctx.ui.editor(`${title} Changes made here are not recorded.`, text);
	return edited !== undefined;
}
