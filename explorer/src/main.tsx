import { render } from "preact";
import { App } from "./views/App.tsx";

const place = document.getElementById("app");
if (place !== null) {
  place.textContent = "";
  render(<App />, place);
}
