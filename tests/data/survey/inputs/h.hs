import Control.Concurrent
import qualified Data.Map as M
main = do { m <- newEmptyMVar; _ <- forkIO (putMVar m (sum [1..1000::Int])); takeMVar m >>= print; print (M.toList (M.fromListWith (+) [(x `mod` 3,x)|x<-[1..20::Int]])) }
