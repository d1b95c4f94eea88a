// SPDX-License-Identifier: MIT
import Glibc
import Loop

// A descriptor that the caller has closed must not become the bus's socket under our words.
Terminal.openStandardDescriptors()
exit(Program.run(Array(CommandLine.arguments.dropFirst())).rawValue)
