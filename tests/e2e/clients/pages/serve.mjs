// Serves the pages, and connects each web socket to a language server of its own.
// `node serve.mjs FOLDER COMMAND...` prints the port.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, ...command] = process.argv.slice(2);
const { WebSocketServer } = createRequire(join(folder, "/"))("ws");
const types = { css: "text/css", html: "text/html", js: "text/javascript", ttf: "font/ttf" };

const pages = createServer((request, response) => {
  const name = request.url.slice(1);
  try {
    const body = readFileSync(join(folder, "built", name));
    response.writeHead(200, { "Content-Type": types[name.split(".").at(-1)] }).end(body);
  } catch {
    response.writeHead(404).end();
  }
});

new WebSocketServer({ server: pages }).on("connection", (socket) => {
  const server = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  let received = Buffer.alloc(0);
  server.stdout.on("data", (data) => {
    received = Buffer.concat([received, data]);
    for (;;) {
      const head = received.indexOf("\r\n\r\n");
      if (head < 0) return;
      const end = head + 4 + Number(/Content-Length: (\d+)/i.exec(received.subarray(0, head).toString())[1]);
      if (received.length < end) return;
      socket.send(received.subarray(head + 4, end).toString());
      received = received.subarray(end);
    }
  });
  socket.on("message", (data) => {
    const body = Buffer.from(data.toString());
    server.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    server.stdin.write(body);
  });
  socket.on("close", () => server.kill());
});

pages.listen(0, "127.0.0.1", () => console.log(pages.address().port));
