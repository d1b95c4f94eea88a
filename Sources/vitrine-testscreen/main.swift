// SPDX-License-Identifier: MIT
import Glibc
import Loop

let loop = try EventLoop()
let pw = try PipeWire(on: loop)
var settings = Settings()
var source: VideoSource?
pw.onConsumer = { node in
    Log("t").info("consumer \(node)"); source?.greet()
}
source = VideoSource(pw, on: loop, index: 0, name: "vitrine-testscreen", settings: settings)
source?.onNode = { Log("t").info("node \($0)") }
loop.run()
